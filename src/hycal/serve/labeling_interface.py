"""The labeling interface of a project of Label Studio: which choices there are, and which classes they mean."""

from __future__ import annotations

from dataclasses import dataclass

from hycal.data.annotations.image_label import parse_xml
from hycal.errors import HyCalError
from hycal.project import State
from hycal.project.labels import check_class_name, class_called, class_label, look_up_class, own_labels, split_label


@dataclass(frozen=True)
class Interface:
    """The choices of a labeling interface: names of the control and of its image, the key of the image in the data.

    `choices` is empty if the tasks bring them.
    """

    control: str
    image: str
    key: str
    choices: frozenset[str]

    def choice(self, state: State, label: str) -> str | None:
        """Return the choice that means a class of the model: its label, or the class alone if it is the only one."""
        if not self.choices or label in self.choices:
            return label
        name = split_label(label)[1]
        return name if name in self.choices and class_called(state, name) == label else None

    def label(self, state: State, choice: str) -> str:
        """Return the class that a choice means. A new one without a domain joins the only domain, or the control's."""
        found = None if "/" in choice else look_up_class(state, choice)
        if found is not None:
            return found.name
        domains = [domain for domain in state.domains if domain]
        domain = domains[0] if len(domains) == 1 else self.control
        label = choice if "/" in choice else class_label(domain, choice)
        own = str(own_labels(state, [label])[label])
        if own not in state.classes:
            check_class_name(own)
        return own


def read_interface(config: str) -> Interface:
    """Return the choices of a labeling interface; expected is one `Choices` for one `Image`."""
    try:
        root = parse_xml(config)
    except HyCalError as error:
        raise HyCalError(f"The labeling interface cannot be read: {error}.") from None
    images = {element.get("name", ""): element.get("value", "") for element in root.iter("Image")}
    controls = [element for element in root.iter("Choices") if element.get("toName") in images]
    if len(controls) != 1:
        raise HyCalError(
            f"The labeling interface has {len(controls)} Choices of an Image; expected one, such as "
            '<View><Image name="image" value="$image"/><Choices name="kind" toName="image">...</Choices></View>.'
        )
    (control,) = controls
    image, names = control.get("toName", ""), control.iter("Choice")
    values = frozenset(element.get("alias") or element.get("value") or "" for element in names)
    return Interface(control.get("name", ""), image, images[image].removeprefix("$"), values)

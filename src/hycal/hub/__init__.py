"""Models in the layout of the Hugging Face hub: a folder with the model, its card and a small configuration.

`commands` imports it; it uses `project` and below.
It never speaks to the network unless it is told to push or fetch, and never sends more than the files of the folder.

>>> FILES
('model.safetensors', 'README.md', 'config.json')
"""

from hycal.hub.card import CardFacts, model_card
from hycal.hub.folder import FILES, fetch, open_folder, push, save_folder

__all__ = ["FILES", "CardFacts", "fetch", "model_card", "open_folder", "push", "save_folder"]

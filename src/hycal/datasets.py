"""Embedded domains to try methods on: those that come with the package, and features of your own.

>>> from hycal import NCM
>>> from hycal.datasets import load_xd8
>>> flower = load_xd8()["flower"]
>>> NCM().fit(*flower.train).score(*flower.test) > 0.85
True
"""

from hycal.data.bundled import load_xd8, xd8_provenance
from hycal.data.embedded import EmbeddedDomain
from hycal.data.features import load_features

__all__ = ["EmbeddedDomain", "load_features", "load_xd8", "xd8_provenance"]

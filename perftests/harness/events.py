"""Torch's CUDA events and what is done with them, as they are when this module is imported.

The plugin imports it before a test's module, which is measured code and could replace them.
"""

from collections.abc import Callable

import torch

Event = torch.cuda.Event
record: Callable[..., None] = Event.record
query: Callable[..., bool] = Event.query
wait: Callable[..., None] = Event.wait

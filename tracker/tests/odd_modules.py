"""A conftest that leaves in sys.modules what stands there in some processes, once tests ran."""

ODD_MODULES = """
import os, sys
from importlib.machinery import ModuleSpec
from importlib.util import LazyLoader, module_from_spec
from types import ModuleType

class Never:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        raise ImportError("loaded by looking at it")

class Whole(ModuleType):
    @property
    def __dict__(self):
        raise ImportError("loaded by looking at it")

class Anything:
    __slots__ = ()

    def __getattr__(self, name):
        raise RuntimeError(name)

def keep(name, module, file=None):
    if file is not None:
        module.__file__ = file
    sys.modules[name] = module

def pytest_runtest_teardown():
    if "lazy" not in sys.modules:
        loader = LazyLoader(Never())
        spec = ModuleSpec("lazy", loader)
        sys.modules["lazy"] = module_from_spec(spec)
        loader.exec_module(sys.modules["lazy"])
        keep("whole", Whole("whole"))
        keep("anything", Anything())
        keep("relative", ModuleType("relative"), "relative.py")
        keep("impossible", ModuleType("impossible"), chr(0))
"""

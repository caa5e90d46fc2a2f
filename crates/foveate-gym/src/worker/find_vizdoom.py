"""Says where ViZDoom keeps its map, without starting it; runs in place of the worker's host."""

import importlib.util


class Find:
    """Its `hello` holds the version and the path."""

    def __init__(self, control, memory, request):
        found = importlib.util.find_spec("vizdoom")
        if found is None or not found.submodule_search_locations:
            raise Refusal("vizdoom cannot be imported (there is none); install it with: %s" % pip("vizdoom"))
        folder = list(found.submodule_search_locations)[0]
        self.hello = {"map": os.path.join(folder, "scenarios", "take_cover.wad")}

    def serve(self):
        pass


JOBS["find vizdoom"] = Find

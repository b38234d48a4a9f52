"""One process of a measurement: works through the items that it is given, on the GPU.

It prints a line when it begins an item, with its inputs prepared, and one with the result. A
fault of a kernel ends this process alone; the launcher goes on in another one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verilocc_bench.measuring.driver import DriverError, Gpu
from verilocc_bench.measuring.launched_kernel import LaunchedKernel, Wrong
from verilocc_bench.measuring.libraries import measure_library


def main(folder: Path, request: dict[str, Any]) -> None:
    """Does what the launcher asks; prints lines of JSON."""
    document = json.loads((folder / "measure.json").read_bytes())
    kernels = {each["key"]: each for each in document["kernels"]}
    work = Path(request["work"])

    def tell(**line: Any) -> None:
        print("\n" + json.dumps(line), flush=True)

    try:
        gpu = Gpu(document["vendor"], request["device"])
        if request["part"] == "device":
            tell(result={"device": gpu.name, "driver_version": gpu.version})
            return
        kernel: LaunchedKernel | None = None
        for item in request["items"]:
            if kernel is None or kernel.document["key"] != item["kernel"]:
                if kernel is not None:
                    kernel.close()
                kernel = LaunchedKernel(gpu, folder, kernels[item["kernel"]], work)
            tell(begin=item)
            if request["part"] == "times":
                result = {"milliseconds": kernel.times(item["sides"], request["rounds"])}
            elif request["part"] == "libraries":
                result = measure_library(kernel, request["rounds"])
            else:
                result = kernel.bits(item["side"], request["launches"], request["slack"])
            tell(result=result)
    except (DriverError, Wrong) as error:
        tell(failed=str(error))

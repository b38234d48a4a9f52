"""Loads a tokenizer and a model with transformers, quietly, and checks that they will do."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import GgufConfig
from transformers.utils import logging

from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.files import file_sha256, read_json
from verilocc_bench.model.advice import CONFIGURATION_KEY, Advice
from verilocc_bench.model.shipped import gguf_file, is_gguf
from verilocc_bench.model.transformers_model.bounds import check_counts, check_weights
from verilocc_bench.model.transformers_model.model import TransformersModel
from verilocc_bench.model.transformers_model.model_files import find_model_folder
from verilocc_bench.model.transformers_model.network import Network, context_of
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.settings.language_model import LocalModelSettings

DTYPES = ("auto", "float32", "bfloat16", "float16")
MESSAGE_LENGTH = 300
CONFIGURATION_BYTES = 4 << 20


def load_model(name: str, settings: LocalModelSettings) -> TransformersModel:
    """The model of a folder or Hub id. Raises InputError if it cannot be used."""
    if settings.dtype not in DTYPES:
        expected = ", ".join(DTYPES)
        raise InputError(f"unknown dtype {settings.dtype!r}; expected one of {expected}")
    device = device_of(settings.device)
    if is_gguf(name) and settings.dtype == "auto":
        settings = replace(settings, dtype="bfloat16" if device.type == "cuda" else "float32")
    trust = settings.trust_remote_code
    place, revision = _files(name, settings.model_revision, trust)
    with _quiet():
        configuration = _configuration(name, place, trust)
        tokenizer = _tokenizer(name, place, trust)
        module = _ready(name, place, configuration, settings, device)
    network = Network(module, device)
    ends = _end_tokens(getattr(module, "generation_config", None), module.config, tokenizer)
    codec = _codec(tokenizer, ends, settings, name)
    tokens, rows = len(tokenizer), network.vocabulary_size
    if tokens > rows:
        raise InputError(
            f"the tokenizer has {tokens} tokens, but the model knows {rows}", source=name
        )
    advice = Advice.from_json(getattr(configuration, CONFIGURATION_KEY, None), name)
    return TransformersModel(network, codec, revision, advice)


def load_module(name: str, settings: LocalModelSettings) -> Any:
    """The network alone, on its device. Raises InputError if it cannot be used."""
    device, trust = device_of(settings.device), settings.trust_remote_code
    place, _ = _files(name, settings.model_revision, trust)
    with _quiet():
        return _ready(name, place, _configuration(name, place, trust), settings, device)


def _ready(
    name: str, place: Path, configuration: Any, settings: LocalModelSettings, device: torch.device
) -> Any:
    module = _module(name, place, configuration, settings)
    with _on_device(name, device):
        return module.to(device).eval()


def load_tokens(name: str, settings: LocalModelSettings) -> tuple[TokenCodec, int | None, Advice]:
    """(codec, context, advice) of a model whose weights are not read."""
    trust = settings.trust_remote_code
    place, _ = _files(name, settings.model_revision, trust)
    with _quiet():
        configuration = _configuration(name, place, trust)
        tokenizer = _tokenizer(name, place, trust)
    codec = _codec(tokenizer, _end_tokens(configuration, tokenizer), settings, name)
    advice = Advice.from_json(getattr(configuration, CONFIGURATION_KEY, None), name)
    return codec, context_of(configuration.get_text_config()), advice


def _codec(
    tokenizer: Any, ends: frozenset[int], settings: LocalModelSettings, name: str
) -> TokenCodec:
    told = json.loads(settings.chat_template_kwargs or "{}")
    if settings.reasoning_effort is not None:
        told["reasoning_effort"] = settings.reasoning_effort
    return TokenCodec(tokenizer, ends, settings.chat, name, told)


def _files(name: str, revision: str | None, with_code: bool) -> tuple[Path, str]:
    """(folder or file of GGUF, revision) of a model."""
    if not is_gguf(name):
        return find_model_folder(name, revision, with_code)
    if revision is not None:
        raise InputError("a file has no revisions: leave the revision out", source=name)
    path = gguf_file(name)
    return path, file_sha256(path)


def _from(place: Path) -> dict[str, Any]:
    """Where transformers reads a model from, as arguments."""
    if place.is_dir():
        return {"pretrained_model_name_or_path": place, "local_files_only": True}
    whole = {"pretrained_model_name_or_path": place.parent, "gguf_file": place.name}
    return {**whole, "local_files_only": True}


def load_parts(name: str, revision: str | None = None) -> tuple[Any, Any]:
    """(network, tokenizer) of a folder, Hub id or file of GGUF, in float32, to be trained on.

    Nothing of the model's own code is run. Raises InputError if it cannot
    be used.
    """
    settings = LocalModelSettings(dtype="float32")
    place, _ = _files(name, revision, with_code=False)
    with _quiet():
        configuration = _configuration(name, place, trust=False)
        tokenizer = _tokenizer(name, place, trust=False)
        network = _module(name, place, configuration, settings)
        if place.is_dir():
            return network, tokenizer
        # A network that was read from GGUF refuses to be saved.
        plain = type(network)(network.config)
        plain.load_state_dict(network.state_dict())
        plain.config.quantization_config = None
        return plain, tokenizer


def _tokenizer(name: str, place: Path, trust: bool) -> Any:
    with _reading("tokenizer", name):
        return transformers.AutoTokenizer.from_pretrained(**_from(place), trust_remote_code=trust)


def device_of(name: str | None) -> torch.device:
    """The device of a name; without one a GPU where there is one. Raises InputError."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device {name!r} cannot be used: {_first_line(error)}") from error
    if device.type == "meta":
        raise InputError("device 'meta' cannot be used: it computes nothing")
    return device


def _configuration(name: str, place: Path, trust: bool) -> Any:
    if place.is_dir():
        _check_configuration(name, place, trust)
    with _reading("configuration", name):
        return transformers.AutoConfig.from_pretrained(**_from(place), trust_remote_code=trust)


def _check_configuration(name: str, folder: Path, trust: bool) -> None:
    try:
        # With the bounds of the house, before transformers reads it.
        raw = read_json(folder / "config.json", CONFIGURATION_BYTES)
    except InputError as error:
        raise InputError(f"config.json cannot be read: {error.message}", source=name) from None
    if not isinstance(raw, dict):
        raise InputError("config.json: expected a JSON object", source=name)
    try:
        check_counts(raw, "config.json")
    except InputError as error:
        raise error.located(name) from None
    if "auto_map" in raw and not trust:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        if raw.get("model_type") not in set(CONFIG_MAPPING.keys()):
            raise InputError(
                "the model needs code from its own folder, which runs only with "
                "--trust-remote-code: read that code first",
                source=name,
            )


def _module(name: str, place: Path, configuration: Any, settings: LocalModelSettings) -> Any:
    if getattr(configuration, "is_encoder_decoder", False):
        raise InputError("an encoder-decoder: expected a causal language model", source=name)
    if not settings.trust_remote_code:
        with _reading("configuration", name):
            check_weights(configuration, place)
    packed = {} if place.is_dir() else {"quantization_config": GgufConfig(dequantize=True)}
    with _reading("weights", name):
        module, report = transformers.AutoModelForCausalLM.from_pretrained(
            **_from(place),
            **packed,
            config=configuration,
            dtype=settings.dtype if settings.dtype == "auto" else getattr(torch, settings.dtype),
            use_safetensors=True,
            trust_remote_code=settings.trust_remote_code,
            output_loading_info=True,
        )
    missing = sorted(map(str, [*report["missing_keys"], *report.get("mismatched_keys", ())]))
    if missing:  # transformers would go on with random numbers
        raise InputError(
            f"{len(missing)} weights are missing or of another shape, such as {missing[0]}",
            source=name,
        )
    if "past_key_values" not in inspect.signature(module.forward).parameters:
        raise InputError(
            f"{type(module).__name__} keeps no cache of keys and values, which generation needs",
            source=name,
        )
    return module


def _end_tokens(*owners: Any) -> frozenset[int]:
    """The tokens with which the model ends, as configurations and the tokenizer say."""
    found: set[int] = set()
    for owner in owners:
        value = getattr(owner, "eos_token_id", None)
        found.update([value] if isinstance(value, int) else value or ())
    return frozenset(found)


@contextlib.contextmanager
def _reading(what: str, source: str) -> Iterator[None]:
    """Any error of transformers on a model's files becomes one line about them."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InfrastructureError(f"{source}: out of memory for the {what}") from error
    except MemoryError as error:
        raise InfrastructureError(f"{source}: out of memory for the {what}") from error
    except InputError as error:
        raise error.located(source) from None
    except Exception as error:  # bad files raise whatever their reader stumbles on
        raise InputError(f"cannot load its {what}: {_first_line(error)}", source=source) from error


@contextlib.contextmanager
def _on_device(source: str, device: torch.device) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InfrastructureError(f"{source}: the weights do not fit on {device}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings, reports or progress bars of transformers meanwhile."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        # The reader of GGUF draws a bar of its own.
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:MESSAGE_LENGTH]

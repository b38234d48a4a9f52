"""How each kind of allocator may be asked: one record of settings for each kind.

| kind | record |
|---|---|
| built-in, in Python, a plug-in, predictions | allocator.AllocatorSettings |
| built-in, and places registers alone | search.PlacementSettings |
| built-in, and searches | search.SearchSettings |
| program (`command:`) | program.ProgramSettings |
| language model in a folder or on the Hub | language_model.LocalModelSettings |
| language model behind an endpoint | language_model.EndpointSettings |

A field says everything about one setting: its name, its default, its flag on
the command line, and whether results name it (see `flags.setting`).
`evaluation.models.resolve` says which kind a `--model` value is.
"""

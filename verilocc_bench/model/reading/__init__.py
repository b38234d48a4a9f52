"""The prompt format `reading`: a language model reads the text and keeps its lists aloud."""

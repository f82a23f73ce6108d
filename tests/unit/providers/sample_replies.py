"""Replies of providers as they document them."""

from providers.table import PROVIDERS

MESSAGE = {
    "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Pa"},
        {"type": "text", "text": "ris"},
    ],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 10,
        "output_tokens": 2,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": None,
    },
}


COMPLETION = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Paris"}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
}


CALLABLE = [name for name, row in PROVIDERS.items() if row.sdk]

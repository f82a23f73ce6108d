"""A provider to practise on: speaks Anthropic Messages, Message Batches and OpenAI chat completions.

    server ──► routes ──► calls ──► dialect (anthropic_messages, openai_chat)
                 │          ├─ answers, schemas   what it says: a function of the request and the seed
                 │          ├─ limits             how much it takes on
                 │          └─ faults             what goes wrong, and how long it takes
                 ├─► message_batches ──► batch_store
                 └─► control             settings, counts and outages, while it runs

It speaks HTTP by hand, for a server that behaves well can't reset a connection in the middle of a word.
"""

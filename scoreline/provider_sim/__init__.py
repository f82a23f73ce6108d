"""A simulated model provider: Anthropic Messages, Message Batches and OpenAI chat completions.

    server ──► routes ──► calls ──► provider_api (anthropic_messages, openai_chat)
                 │          ├─ answers, schemas   the answer: a function of the request and the seed
                 │          ├─ limits             token buckets
                 │          └─ faults             drawn faults and latencies
                 ├─► message_batches ──► batch_store
                 └─► control             settings, counts and outages at run time

It implements HTTP itself, because a well-behaved server can't reset a connection in the middle of a reply.
"""

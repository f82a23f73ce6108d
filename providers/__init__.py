"""Model providers: their addresses, request formats, prices, rate limit headers and errors."""

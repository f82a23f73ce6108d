"""Secrets for tests of their redaction."""

SECRET = "sk-live/Q7+abc_0123456789=="

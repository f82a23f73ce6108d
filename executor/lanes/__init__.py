"""Lanes: what a fleet may ask of one provider, shared by all executors."""

"""The demo: a thousand fast evaluations on a bad network, and tables that come out right all the same."""

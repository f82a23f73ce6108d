"""`python -m scoreline` is `scoreline`: how one process starts another of its kind."""

from scoreline.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m grafana`: write the dashboards that Grafana reads."""

from grafana.catalogue import FOLDER, files


def main() -> None:
    """Write every file anew, and remove those of dashboards that are no more."""
    wanted = files()
    for stray in set(FOLDER.glob("*.json")) - set(wanted):
        stray.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

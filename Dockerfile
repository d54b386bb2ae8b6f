FROM python:3.12-slim
WORKDIR /product
COPY . .
RUN pip install --no-cache-dir '.[postgres]' && useradd --create-home speckit
USER speckit
# the documents to serve are mounted here
WORKDIR /workspace
ENV SPECKIT_ROOT=/workspace
ENTRYPOINT ["speckit-memory"]
CMD ["serve"]

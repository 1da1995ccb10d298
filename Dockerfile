FROM python:3.11-slim
WORKDIR /foreshape
COPY . .
RUN pip install --no-cache-dir --constraint constraints.txt --editable .
ENV FORESHAPE_HOME=/var/lib/foreshape
VOLUME /var/lib/foreshape
ENTRYPOINT ["foreshape"]

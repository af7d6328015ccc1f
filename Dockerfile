# The tag's content changes. For a reproducible image pass its digest: --build-arg NODE_IMAGE=node:24-slim@sha256:...
ARG NODE_IMAGE=node:24-slim

# The lock file also describes the workspaces, so `npm ci` needs their manifests.
FROM ${NODE_IMAGE} AS manifests
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY clients/typescript/package.json clients/typescript/
COPY packages packages
RUN find packages -type f ! -name package.json -delete

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY --from=manifests /app ./
RUN npm ci
COPY tsconfig.json ./
COPY bin bin
COPY tools tools
COPY src src
COPY packages packages
COPY migrations migrations
COPY web/assets/guide.html web/assets/
COPY docs docs
COPY README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md ./
RUN npm run build
# Only manifests and compiled files of the packages are needed to run.
RUN rm -rf dist/compile-cache dist/*.tsbuildinfo packages/*.js packages/*/src packages/*/test packages/*/*.md \
  packages/*/LICENSE packages/*/tsconfig.json packages/*/dist/.tsbuildinfo packages/*/dist/*.d.ts packages/*/dist/*/*.d.ts packages/*/dist/*/*/*.d.ts

FROM ${NODE_IMAGE} AS production
WORKDIR /app
COPY --from=manifests /app ./
# Omits the Node.js package, which is for machines with an older Node.js: the image has its own.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force

FROM ${NODE_IMAGE}
ARG VERSION=unknown REVISION=unknown
LABEL org.opencontainers.image.title="animal-store" \
      org.opencontainers.image.description="The animal store service: REST to the letter of its specification, and GraphQL." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Removes the package managers, because the container installs nothing.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn* /opt/yarn*
# DRAIN_DELAY_MS gives a proxy time to notice that `/readyz` fails. OPERATIONS_PORT opens the operations port. On the
# container's loopback it would be unreachable, hence OPERATIONS_HOST.
ENV REVISION=${REVISION} NODE_ENV=production HOST=0.0.0.0 PORT=4000 OPERATIONS_HOST=0.0.0.0 DATA_DIR=/data DRAIN_DELAY_MS=5000
WORKDIR /app
RUN install -d -o node -g node -m 700 /data
COPY package.json LICENSE operations/healthcheck.mjs ./
COPY web/assets web/assets
COPY web/explorer/dist web/explorer/dist
COPY --from=production /app/node_modules node_modules
COPY --from=build /app/packages packages
COPY --from=build /app/dist dist
COPY bin bin
RUN ln -s /app/bin/animal-store.js /usr/local/bin/animal-store
# The user `node` by its number, so that Kubernetes can verify that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 4000 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["node", "healthcheck.mjs"]
# Without a shell, so that signals reach Node.js.
CMD ["node", "dist/bundle/main.js"]

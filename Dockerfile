# syntax=docker/dockerfile:1

FROM node:24-slim AS build
WORKDIR /app
# The lock file also describes the workspace of the test clients: its manifest must be there, its packages need not.
COPY package.json package-lock.json .npmrc ./
COPY test/clients/package.json test/clients/
RUN npm ci
COPY tsconfig.json ./
COPY src src
COPY migrations migrations
RUN npm run build && rm -rf dist/compile-cache

FROM node:24-slim AS production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY test/clients/package.json test/clients/
# Without the Node that the lock file brings for machines that have an older one: the image has its own.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force

FROM node:24-slim
LABEL org.opencontainers.image.title="animal-store" \
      org.opencontainers.image.description="The animal store service: REST to the letter of its specification, and GraphQL." \
      org.opencontainers.image.licenses="MIT"
# A proxy in front needs a moment to notice that `/readyz` says no: DRAIN_DELAY_MS.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/data DRAIN_DELAY_MS=5000
WORKDIR /app
RUN install -d -o node -g node -m 700 /data
COPY package.json LICENSE ./
COPY --from=production /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/src/main.js"]

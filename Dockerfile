# Build with everything, run with what production needs.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY test/clients/package.json test/clients/
RUN npm ci
COPY tsconfig.json ./
COPY src src
COPY migrations migrations
RUN npm run build

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY test/clients/package.json test/clients/
RUN npm ci --omit=dev

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
RUN install -d -o node -g node -m 700 /data
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 4000}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/src/main.js"]

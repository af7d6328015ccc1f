import { createServer } from 'node:http';
import { hotPage } from './pet.statements.js';

// The limit of Node.js: the text of the hot page, for every request.
const page = await hotPage();
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': Buffer.byteLength(page),
};

createServer((_request, response) =>
  response.writeHead(200, headers).end(page),
).listen(Number(process.env.PORT), '127.0.0.1');

// What a guide does in a browser: it names the address of this service, copies code, and folds its lists on a phone.
import { addCopyButton } from './copy.js';

const written = 'http://127.0.0.1:4000';
const address = new URL('../..', import.meta.url).href.replace(/\/$/, '');

for (const code of document.querySelectorAll('main code')) {
  if (code.textContent.includes(written)) code.textContent = code.textContent.replaceAll(written, address);
}
for (const pre of document.querySelectorAll('main pre')) addCopyButton(pre);
if (matchMedia('(max-width: 760px)').matches) {
  for (const list of document.querySelectorAll('nav details')) list.open = false;
}

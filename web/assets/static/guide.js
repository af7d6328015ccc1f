// What a guide does in a browser: it names the address of this service, copies
// code, and folds its lists on a phone.
import { addCopyButton } from './copy.js';

const written = 'http://127.0.0.1:4000';
const address = new URL('../..', import.meta.url).href.replace(/\/$/, '');

for (const one of document.querySelectorAll('main :is(code, a)')) {
  if (one.textContent.includes(written))
    one.textContent = one.textContent.replaceAll(written, address);
  if (one.href?.startsWith(written))
    one.href = one.href.replace(written, address);
}
for (const pre of document.querySelectorAll('main pre')) addCopyButton(pre);
if (matchMedia('(max-width: 760px)').matches) {
  for (const list of document.querySelectorAll('nav details'))
    list.open = false;
}

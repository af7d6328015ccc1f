/** Adds a button to a block of code, which copies it. */
export function addCopyButton(pre) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', () => copyBefore(button));
  const box = document.createElement('div');
  box.className = 'code';
  pre.replaceWith(box);
  box.append(pre, button);
}

/** Copies the block before a button, which says so for two seconds. */
export async function copyBefore(button) {
  await copy(button.previousElementSibling);
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 2000);
}

async function copy(pre) {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(pre.textContent);
  // Browsers offer the clipboard only over HTTPS and on this machine.
  getSelection().selectAllChildren(pre);
  document.execCommand('copy');
}

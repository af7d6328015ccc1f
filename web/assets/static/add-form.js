// The form that adds an item to a collection.
import { wordsOf } from './collections.js';
import { call } from './key.js';

const at = (id) => document.getElementById(id);

/** Shows the form for an input. */
export function showForm({ title, fields }) {
  at('add').textContent = title;
  at('fields').replaceChildren(...fields.map(fieldOf));
}

/** Sends the form's item. @returns the response, and its text */
export async function sendForm({ name, input }) {
  const given = new FormData(at('create'));
  const members = input.fields
    .map((field) => [field, `${given.get(field.name)}`])
    .filter(([{ isRequired }, value]) => isRequired || value !== '')
    .map(([field, value]) => `"${field.name}":${jsonOf(field, value)}`);
  const response = await call(`v1/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{${members.join()}}`,
  });
  return { response, text: await response.text() };
}

/**
 * JSON of a value. Digits are never a JavaScript number, which would round an
 * int64.
 */
function jsonOf({ type }, value) {
  if (type === 'string') return JSON.stringify(value);
  return value.trim().replace(/^(-?)0+(?=\d)/, '$1');
}

function fieldOf(field) {
  const label = document.createElement('label');
  const control = field.enum ? choiceOf(field) : inputOf(field);
  control.name = field.name;
  control.required = field.isRequired;
  const isJson = field.type === 'object' || field.type === 'array';
  label.append(wordsOf(field.name), isJson ? ' (JSON) ' : ' ', control);
  return label;
}

function choiceOf({ enum: choices, isRequired, default: preset }) {
  const control = document.createElement('select');
  const isEmptyPossible = !isRequired && preset === undefined;
  for (const choice of isEmptyPossible ? ['', ...choices] : choices)
    control.append(new Option(choice, choice, false, choice === preset));
  return control;
}

function inputOf({ type, format, maxLength, examples: [example = ''] = [] }) {
  const control = document.createElement('input');
  const text = typeof example === 'string' ? example : JSON.stringify(example);
  control.placeholder = format === 'int64' ? '9007199254740993' : text;
  if (maxLength) control.maxLength = maxLength;
  if (type !== 'integer') return control;
  return Object.assign(control, {
    inputMode: 'numeric',
    pattern: '\\s*-?[0-9]+\\s*',
    title: 'an integer',
  });
}

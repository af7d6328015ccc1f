import type { PickOne } from '@animal-store/engine';
import { PetStatus } from './pet.schemas.ts';

/** The breeds of each category. The ids of categories begin with 1. */
const breeds = [
  [
    'Beagle',
    'Border Collie',
    'Dachshund',
    'Greyhound',
    'Labrador',
    'Poodle',
    'Whippet',
  ],
  ['Bengal', 'Burmese', 'Maine Coon', 'Persian', 'Ragdoll', 'Siamese', 'Tabby'],
  ['Budgie', 'Canary', 'Cockatiel', 'Finch', 'Lovebird'],
  ['Angora Rabbit', 'Dutch Rabbit', 'Lop', 'Rex Rabbit'],
  ['Betta', 'Goldfish', 'Guppy', 'Koi'],
  ['Fjord Horse', 'Icelandic Horse', 'Shetland Pony'],
];
/** Dogs and cats are the most common. */
const shares = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5];

const names =
  'Ada Alma Apollo Bella Benny Bruno Charlie Coco Daisy Django Ella Emil Felix Fiona Frida Gizmo Hazel Hugo Ida Iris Jasper Juno Kaya Kiwi Leo Lotta Luna Mabel Max Milo Mimi Momo Nala Nero Nora Olive Oscar Otis Pepper Pico Poppy Quinn Rex Romy Rosie Ruby Sam Smilla Stella Theo Tilda Toby Uma Vito Willow Yuki Zelda Zoë'.split(
    ' ',
  );

const { available, pending, sold } = PetStatus;
const statuses = [
  available,
  available,
  available,
  available,
  available,
  pending,
  sold,
  sold,
];

/** Creates a sample pet: `Luna the Maine Coon`. */
export function samplePet(pick: PickOne): object {
  const category = pick(shares);
  return {
    name: `${pick(names)} the ${pick(breeds[category] ?? [])}`,
    categoryId: category + 1,
    status: pick(statuses),
  };
}

import type { PickOne } from '../../api/resources/collection.ts';
import { PetStatus } from './pet.schemas.ts';

/** Species: category id, and breeds. */
const categories = [
  {
    categoryId: 1,
    breeds: [
      'Beagle',
      'Border Collie',
      'Dachshund',
      'Greyhound',
      'Labrador',
      'Poodle',
      'Whippet',
    ],
  },
  {
    categoryId: 2,
    breeds: [
      'Bengal',
      'Burmese',
      'Maine Coon',
      'Persian',
      'Ragdoll',
      'Siamese',
      'Tabby',
    ],
  },
  {
    categoryId: 3,
    breeds: ['Budgie', 'Canary', 'Cockatiel', 'Finch', 'Lovebird'],
  },
  {
    categoryId: 4,
    breeds: ['Angora Rabbit', 'Dutch Rabbit', 'Lop', 'Rex Rabbit'],
  },
  { categoryId: 5, breeds: ['Betta', 'Goldfish', 'Guppy', 'Koi'] },
  {
    categoryId: 6,
    breeds: ['Fjord Horse', 'Icelandic Horse', 'Shetland Pony'],
  },
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
  const { categoryId, breeds } = categories[
    pick(shares)
  ] as (typeof categories)[number];
  return {
    name: `${pick(names)} the ${pick(breeds)}`,
    categoryId,
    status: pick(statuses),
  };
}

// Reads every valid vector and compares it with its twin; refuses every invalid one, with the code of its twin.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { fileURLToPath } from 'node:url';

import { Refused } from './json.mjs';
import { readCheckpoint, readLife } from './reader.mjs';
import { tagged } from './values.mjs';

const VECTORS = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));

function asTwin(folder, about) {
  const { checkpoint, participants } = readCheckpoint(join(folder, 'checkpoint'));
  const lives = join(folder, 'lives');
  const names = existsSync(lives) ? readdirSync(lives).sort() : [];
  return {
    about,
    checkpoint: { ...checkpoint, marks: Object.fromEntries(checkpoint.marks), state: tagged(checkpoint.state) },
    participants: Object.fromEntries(
      [...participants].map(([name, { kind, records }]) => [
        name,
        { kind, records: records.map((each) => ({ ...each, payload: tagged(each.payload) })) },
      ]),
    ),
    lives: names.map((name) => readLife(lives, name)).map(({ life, source }) => ({ life, source_checkpoint_id: source })),
  };
}

/** Beside payloads, a twin has plain numbers: BigInt, so that none is rounded. */
function readTwin(path) {
  const source = readFileSync(path, 'utf8').replace(/"(sequence|boundary|schema|life)":([0-9]+)/g, '"$1":"n$2"');
  return JSON.parse(source.replace(/"marks":\{[^}]*\}/, (marks) => marks.replace(/:([0-9]+)/g, ':"n$1"')));
}

const plain = (value) => JSON.parse(JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `n${each}` : each)));

function problemOf(kind, name) {
  const folder = join(VECTORS, kind, name);
  const twin = readTwin(join(folder, 'twin.json'));
  try {
    const read = asTwin(folder, twin.about);
    if (kind === 'invalid') return 'was not refused';
    return isDeepStrictEqual(plain(read), twin) ? null : 'is not what the twin says';
  } catch (error) {
    if (!(error instanceof Refused)) return `failed: ${error.stack}`;
    if (kind === 'valid') return `was refused: ${error.message}`;
    return error.code === twin.verify ? null : `was refused as ${error.code}, not ${twin.verify}: ${error.message}`;
  }
}

let failed = 0;
for (const kind of ['valid', 'invalid']) {
  const names = readdirSync(join(VECTORS, kind)).sort();
  for (const name of names) {
    const problem = problemOf(kind, name);
    if (problem !== null) {
      failed += 1;
      console.error(`${kind}/${name} ${problem}`);
    }
  }
  console.log(`${kind}: ${names.length} vectors`);
  if (names.length === 0) failed += 1;
}
console.log(failed === 0 ? 'All as their twins say.' : `${failed} are not as their twins say.`);
process.exitCode = failed === 0 ? 0 : 1;

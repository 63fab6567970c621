// SHA256SUMS, which has one digest for the folder of each case.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

// The cases, such as `valid/one-record-none`, whose folder is not the published one, or is missing, or not listed.
export function changedCases(vectors, kinds) {
  const listed = new Map(readFileSync(join(vectors, 'SHA256SUMS'), 'utf8').split('\n').filter(Boolean)
    .map((line) => line.split('  ').reverse()));
  const found = new Map(kinds.flatMap((kind) => readdirSync(join(vectors, kind)).map((name) => `${kind}/${name}`))
    .map((name) => [name, folderDigest(join(vectors, name))]));
  return [...new Set([...listed.keys(), ...found.keys()])].filter((name) => listed.get(name) !== found.get(name));
}

// Of each file, sorted by path: the path, a zero byte, the size in decimal, a zero byte, and its bytes.
function folderDigest(folder) {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  const hash = createHash('sha256');
  for (const path of paths.sort()) {
    const bytes = readFileSync(join(folder, path));
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

import { existsSync, readdirSync } from 'node:fs';
import { SMALL_FILE } from './limits.mjs';
import { isInteger, isLabelText, member } from './member.mjs';
import { damaged } from './refusal.mjs';
import { readSealed } from './seal.mjs';

const NAME = /^(0|[1-9][0-9]{0,8})\.json$/;

// The lives of a run, by number. What has another name is none.
export function readLives(folder) {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => NAME.test(name)) : [];
  return names.map((name) => readLife(folder, name)).sort((a, b) => Number(a.life - b.life));
}

function readLife(folder, name) {
  const path = `${folder}/${name}`;
  const { body } = readSealed(path, SMALL_FILE);
  const life = member(body, 'life', isInteger);
  if (`${life}.json` !== name) throw damaged(`${path}: life ${life}`);
  return { life, source: member(body, 'source_checkpoint_id', (value) => value === null || isLabelText(value)) };
}

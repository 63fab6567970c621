import { readIndex } from './index.mjs';
import { layoutOf } from './layout.mjs';
import { readManifest } from './manifest.mjs';
import { damaged } from './refusal.mjs';
import { readSegment } from './segment.mjs';

// A participant and its records in the order written.
export function readParticipant(folder, { name, kind, manifest: digest }, checkpointId) {
  const manifest = readManifest(folder, digest);
  if (manifest.name !== name) throw damaged(`${folder}: the manifest of ${manifest.name}`);
  if (manifest.kind !== kind) throw damaged(`${folder}: the kind is ${manifest.kind}, not ${kind}`);
  if (manifest.checkpointId !== checkpointId) throw damaged(`${folder}: part of checkpoint ${manifest.checkpointId}`);
  const layout = layoutOf(manifest.segments, readIndex(folder, manifest));
  const records = manifest.segments.flatMap((segment, i) => readSegment(folder, segment, layout[i]));
  return { name, kind, folder, manifest, records };
}

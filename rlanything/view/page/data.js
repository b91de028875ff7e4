'use strict';
// The parts of the page: gzipped JSON, beside the page or inside it. Nothing is loaded from anywhere else.
const MOST_KEPT = 40;
const keptParts = new Map();

async function bytesOf(name) {
  const inside = document.getElementById('part-' + name);
  if (inside) return Uint8Array.from(atob(inside.textContent), c => c.charCodeAt(0));
  if (location.protocol === 'file:') {
    throw new Error('a folder needs a server: python -m http.server --bind 127.0.0.1 --directory <this folder>; or make a single file');
  }
  const reply = await fetch('data/' + name + '.json.gz');
  if (!reply.ok) throw new Error('data/' + name + '.json.gz: ' + reply.status + ' ' + reply.statusText);
  return new Uint8Array(await reply.arrayBuffer());
}

async function readPart(name) {
  const bytes = await bytesOf(name);
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;  // some hosts unpack the files that they send
  const stream = new Blob([bytes]).stream();
  return new Response(packed ? stream.pipeThrough(new DecompressionStream('gzip')) : stream).json();
}

// The promise of a part of a run: of the first, or of the one beside it. The parts that were used last are kept.
function part(called, g = state.g) {
  const name = (g ? 'against/' : '') + called;
  const found = keptParts.get(name) || readPart(name);
  keptParts.delete(name);
  keptParts.set(name, found);
  found.catch(() => keptParts.delete(name));
  if (keptParts.size > MOST_KEPT) keptParts.delete(keptParts.keys().next().value);
  return found;
}

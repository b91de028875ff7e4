'use strict';
// Pictures that an agent saw. Their names are hashes; a picture is a file beside the page, or inside it.
const PICTURE = /^[0-9a-f]{64}$/;

function pictureAt(name) {
  if (!PICTURE.test(name)) throw new Error('no name of a picture: ' + String(name).slice(0, 80));
  const inside = document.getElementById('picture-' + name);
  return inside ? 'data:image/png;base64,' + inside.textContent : 'data/pictures/' + name + '.png';
}

// point: where the action points on the last of them, as shares of its width and height.
function drawPictures(place, seen, when, point) {
  seen.forEach((picture, k) => {
    if (picture.problem) { addText(place, 'p', 'A picture cannot be shown: ' + picture.problem, 'crashed'); return; }
    const box = add(add(place, 'figure'), 'div', null, 'picture');
    const marked = point && k === seen.length - 1;
    const image = add(box, 'img');
    const size = picture.width + ' x ' + picture.height + ' pixels';
    Object.assign(image, {loading: 'lazy', width: picture.width, height: picture.height, src: pictureAt(picture.sha256)});
    image.alt = 'What the agent saw ' + when + ', ' + size;
    const said = marked ? '; its action points at ' + point.map((share, side) => Math.floor(share * [picture.width, picture.height][side])).join(', ') : '';
    add(box.parentElement, 'figcaption', 'Seen ' + when + ', ' + size + said, 'quiet');
    if (!marked) return;
    const spot = add(box, 'span', null, 'point');
    Object.assign(spot.style, {left: 100 * point[0] + '%', top: 100 * point[1] + '%'});
  });
}

'use strict';
const dark = matchMedia('(prefers-color-scheme: dark)');
// The colours are those of the page's style, which follow the scheme; on paper they are dark.
function look(onPaper) {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = onPaper ? ['#000', '#bbb'] : ['--ink', '--line'].map(name => style.getPropertyValue(name).trim());
  const axis = {gridcolor: line, linecolor: line};
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: {color: ink},
    template: {layout: {xaxis: axis, yaxis: axis}},
  };
}
function below(layout) {  // where there is little room, panels stand below each other
  if (innerWidth >= 700 || !layout.grid) return {};
  const panels = Object.keys(layout).filter(key => key.startsWith('xaxis')).length;
  return {grid: {...layout.grid, rows: panels, columns: 1}, height: 330 * panels};
}
const figures = Object.entries(JSON.parse(document.getElementById('data').textContent));
function draw(onPaper) {
  for (const [name, {data, layout}] of figures) {
    Plotly.react(name, data, {...layout, ...look(onPaper), ...below(layout)}, {responsive: true, displaylogo: false});
  }
}
draw(false);
dark.addEventListener('change', () => draw(false));
addEventListener('beforeprint', () => draw(true));
addEventListener('afterprint', () => draw(false));

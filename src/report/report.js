// Draws each plot from the JSON beside it; colours come from the style sheet, so that they follow the
// viewer's light or dark scheme.
(() => {
  "use strict";
  const narrow = () => window.innerWidth < 600;
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Plotly reads some markup in its texts; those from files have none. A line feed is a new line.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/\n/g, "<br>");

  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
  const DASHES = ["solid", "dashdot", "longdash"];

  // There are six colours: what shares one differs in symbol and dash.
  const traceOf = (plot, series, index) => {
    const round = Math.floor(index / 6);
    const roleColour = { full: "--full", llama: "--llama" }[series.role];
    const paint = colour(roleColour || `--c${index % 6}`);
    const isBar = plot.mark === "bars" || plot.mark === "stacked";
    const labels = series.labels.map(plain);
    const trace = {
      name: plain(series.name),
      x: isBar || series.x.length === 0 ? labels : series.x,
      y: series.y,
      type: isBar ? "bar" : "scatter",
      marker: { color: paint, size: plot.mark === "points" ? 11 : 7 },
    };
    if (plot.mark === "stacked") {  // lying, so that long names stay readable
      Object.assign(trace, { orientation: "h", x: series.y, y: labels });
      trace.hovertemplate = "%{y}<br>%{x:.3~g} %<extra>%{fullData.name}</extra>";
    } else if (isBar) {
      trace.hovertemplate = "%{x}<br>%{y:.4~g}<extra>%{fullData.name}</extra>";
    } else {
      trace.mode = plot.mark === "points" ? "markers" : "lines+markers";
      trace.line = {
        color: paint,
        width: 2.5,
        dash: { llama: "dash", full: "dot" }[series.role] || DASHES[Math.min(round, 2)],
      };
      trace.marker.symbol = SYMBOLS[(index + round) % 6] + (round % 2 ? "-open" : "");
      trace.text = labels;
      trace.hovertemplate = labels.length
        ? "%{text}<br>%{x:.4~g}, %{y:.4~g}<extra></extra>"
        : "%{x:,}: %{y:.4~g}<extra>%{fullData.name}</extra>";
    }
    if (series.low.length) {
      trace.error_y = {
        type: "data",
        symmetric: false,
        array: series.y.map((y, i) => series.high[i] - y),
        arrayminus: series.y.map((y, i) => y - series.low[i]),
        color: isBar ? colour("--text") : paint,
        thickness: 1.2,
        width: isBar ? 5 : 4,
      };
    }
    return trace;
  };

  // Powers of two within the range, for axes that count tokens.
  const powersOfTwo = (plot) => {
    const all = plot.series.flatMap((s) => s.x);
    const ticks = [];
    for (let v = 1; v <= Math.max(...all) * 1.01; v *= 2) {
      if (v >= Math.min(...all) * 0.99) ticks.push(v);
    }
    return ticks;
  };

  const layoutOf = (plot) => {
    const axis = (given) => ({
      title: { text: given.title, font: { size: 13 }, standoff: 10 },
      gridcolor: colour("--grid"),
      linecolor: colour("--line"),
      zerolinecolor: colour("--line"),
      tickfont: { size: 12 },
      automargin: true,
    });
    const isLying = plot.mark === "stacked";
    const x = axis(isLying ? plot.y : plot.x);
    const y = axis(isLying ? plot.x : plot.y);
    if (isLying) {
      Object.assign(x, { range: [0, 100] });
      Object.assign(y, { type: "category", autorange: "reversed" });
      if (narrow()) y.tickfont.size = 10;
    } else if (plot.mark === "bars") {
      x.type = "category";
    } else if (plot.x.log) {
      x.type = "log";
      const ticks = powersOfTwo(plot);
      if (ticks.length > 1) Object.assign(x, { tickvals: ticks, ticktext: ticks.map(String) });
    } else if (plot.mark === "lines") {
      x.rangemode = "tozero";
      x.separatethousands = true;
    }
    const isShare = plot.y.title === "accuracy";
    if (isLying) Object.assign(y, { showgrid: false });
    else if (isShare) Object.assign(y, { range: [0, 1.04], tickformat: ".0%" });
    else y.rangemode = "tozero";
    if (plot.x.title === "kept-needle rate") Object.assign(x, { range: [-0.03, 1.04], tickformat: ".0%" });
    return {
      xaxis: x,
      yaxis: y,
      barmode: plot.mark === "stacked" ? "stack" : "group",
      bargap: 0.35,
      showlegend: true,
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: narrow() ? 11 : 12 }, traceorder: "normal" },
      margin: { l: 56, r: 12, t: 12, b: 52 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, color: colour("--text") },
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--text") } },
    };
  };

  const draw = () => {
    for (const data of document.querySelectorAll("script.plot-data")) {
      const plot = JSON.parse(data.textContent);
      if (plot.mark === "stacked") {
        const height = 130 + 28 * plot.series[0].labels.length;
        document.getElementById(data.dataset.for).style.height = `${height}px`;
      }
      const others = plot.series.filter((s) => s.role === "other");
      const traces = plot.series.map((s) => traceOf(plot, s, Math.max(0, others.indexOf(s))));
      Plotly.react(data.dataset.for, traces, layoutOf(plot), {
        responsive: true,
        displayModeBar: false,
      });
    }
  };

  draw();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let wasNarrow = narrow();
  window.addEventListener("resize", () => {
    if (narrow() !== wasNarrow) draw();
    wasNarrow = narrow();
  });
})();

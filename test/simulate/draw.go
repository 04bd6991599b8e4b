// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a picture, and the margin around what is drawn: letters are larger in a browser than the library thinks.
const width, height, margin vg.Length = 560, 340, 8

// darkStyle has a reader who prefers dark pages see the same colours on black.
const darkStyle = "<style>@media (prefers-color-scheme: dark) { svg > g { filter: invert(1) hue-rotate(180deg) } }</style>\n"

// draw returns the figure as SVG, the same for the same figure.
func (f *figure) draw() ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = nil // all of the canvas is white, the margin too
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, "conflicts for 1,000 pods"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, 3
	if f.log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, s := range f.series {
		points := make(plotter.XYs, len(f.at))
		for j, x := range f.at {
			points[j] = plotter.XY{X: x, Y: s.y[j]}
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", f.name, err)
		}
		// The two of a pair differ in their dashes.
		line.Color, line.Dashes = plotutil.Color(i/2), plotutil.Dashes(i%2)
		marks.Color, marks.Shape = plotutil.Color(i/2), plotutil.Shape(i%2)
		p.Add(line, marks)
		p.Legend.Add(s.name, line, marks)
	}
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("drawing %s: %w", f.name, err)
	}
	svg := bytes.Replace(out.Bytes(), []byte("<g "), []byte(darkStyle+"<g "), 1)
	return bytes.Replace(svg, fmt.Appendf(nil, `width="%gpt" height="%gpt" `, width, height), nil, 1), nil // as large as there is room
}

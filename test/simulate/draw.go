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
)

// The size of a picture.
const width, height = 18 * vg.Centimeter, 10 * vg.Centimeter

// draw returns the figure as SVG, the same for the same figure.
func (f *figure) draw() ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, "conflicts for 1,000 pods"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
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
	to, err := p.WriterTo(width, height, "svg")
	if err != nil {
		return nil, fmt.Errorf("drawing %s: %w", f.name, err)
	}
	var out bytes.Buffer
	if _, err := to.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("drawing %s: %w", f.name, err)
	}
	return out.Bytes(), nil
}

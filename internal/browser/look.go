// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
)

// overlapping is a script that looks at all labels of a picture: those that lie on each other, or leave the picture.
const overlapping = `
	const labels = [...document.querySelectorAll("svg text")].filter(t => t.textContent.trim() !== "").map(t => ({text: t.textContent, box: t.getBoundingClientRect()}));
	const whole = document.querySelector("svg").getBoundingClientRect(), wrong = [], off = 1;
	for (const [i, a] of labels.entries()) {
		if (a.box.left < whole.left - off || a.box.right > whole.right + off || a.box.top < whole.top - off || a.box.bottom > whole.bottom + off) wrong.push(a.text + " leaves the picture");
		for (const b of labels.slice(0, i)) {
			if (a.box.left + off < b.box.right && b.box.left + off < a.box.right && a.box.top + off < b.box.bottom && b.box.top + off < a.box.bottom) wrong.push(a.text + " lies on " + b.text);
		}
	}
	return {labels: labels.length, wrong: wrong};`

// Labels looks at the labels of the first picture in a page of HTML, in the fonts of this machine. It returns how many there are, and a
// sentence on each that lies on another one or leaves the picture.
func (b Browser) Labels(ctx context.Context, page []byte, width, height int) (labels int, wrong []string, err error) {
	var answer struct {
		Labels int
		Wrong  []string
	}
	err = b.Find(ctx, page, width, height, overlapping, &answer)
	return answer.Labels, answer.Wrong, err
}

// PicturesEnv names a folder in which all that Look has seen stays, for who wants to look as well.
const PicturesEnv = "ESPALIER_PICTURES"

// fewest is how many colours a page or a picture has that is not empty: letters have as many by themselves.
const fewest = 20

// Look looks at a page, or at a picture, as who prefers light ones and as who prefers dark ones. It is an error if there is nothing on it, or if
// it is not as it is preferred. The shots are left in a folder, as PNG.
func (b Browser) Look(ctx context.Context, file string, width, height int, folder string) error {
	if named := os.Getenv(PicturesEnv); named != "" {
		folder = named
	}
	for _, dark := range []bool{false, true} {
		shot, err := b.shoot(ctx, Page{File: file, Width: width, Height: height, Dark: dark}, filepath.Join(folder, fmt.Sprintf("%s-dark-%t.png", filepath.Base(file), dark)))
		if err != nil {
			return err
		}
		if colours, brightness := glance(shot); colours < fewest || brightness > 0.5 == dark {
			return fmt.Errorf("%s has %d colours and a brightness of %.2f where dark is preferred: %t", file, colours, brightness, dark)
		}
	}
	return nil
}

// glance is how many colours a picture has, and how bright the whole is, from 0 to 1.
func glance(picture image.Image) (colours int, brightness float64) {
	all := make(map[color.RGBA]bool)
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
			all[c] = true
			brightness += (float64(c.R) + float64(c.G) + float64(c.B)) / 3 / 255
		}
	}
	return len(all), brightness / float64(max(bounds.Dx()*bounds.Dy(), 1))
}

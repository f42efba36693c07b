package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// table has samples of figures: a row for each figure, a column for each service.
type table struct {
	rows, columns []string
	samples       map[string][]float64 // of a column and a row
}

// add adds a sample.
func (t *table) add(column, row string, v float64) {
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	t.samples[column+row] = append(t.samples[column+row], v)
}

// value returns the median of samples, NaN without any.
func (t *table) value(column, row string) float64 { return quantile(t.samples[column+row], 0.5) }

// String returns the table in Markdown. Each value is also divided by the first positive
// one of its row.
func (t *table) String() string {
	var text strings.Builder
	text.WriteString("| | " + strings.Join(t.columns, " | ") + " |\n|---|" + strings.Repeat("---|", len(t.columns)) + "\n")
	for _, row := range t.rows {
		text.WriteString("| " + row)
		first := math.NaN()
		for _, column := range t.columns {
			v := t.value(column, row)
			switch {
			case math.IsNaN(v):
				text.WriteString(" | ")
			case !(first > 0): // or NaN
				first = v
				text.WriteString(" | " + number(v))
			default:
				text.WriteString(" | " + number(v) + " (" + number(v/first) + ")")
			}
		}
		text.WriteString(" |\n")
	}
	return text.String()
}

// number returns a value with three digits.
func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// quantile returns the value that a share of all values do not exceed, NaN if there are none.
func quantile(all []float64, share float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

package config

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// line is a header or a key with its value in a TOML document.
type line struct {
	header     bool
	table      []string // of the header above
	array      bool     // the table is in an array
	path       []string // of the header or of the key, from the top
	start, end int
	value      int // where the value starts
}

// linesOf parses a document.
func linesOf(doc []byte) ([]line, error) {
	var lines []line
	var table []string
	array := false
	var p unstable.Parser
	p.Reset(doc)
	for p.NextExpression() {
		e := p.Expression()
		var names []string
		end := 0
		for key := e.Key(); key.Next(); {
			names = append(names, string(key.Node().Data))
			end = int(key.Node().Raw.Offset + key.Node().Raw.Length)
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, array = names, e.Kind == unstable.ArrayTable
			lines = append(lines, line{header: true, table: table, array: array, path: names, start: end, end: end})
		case unstable.KeyValue:
			value := end + bytes.IndexByte(doc[end:], '=') + 1
			l := line{table: table, array: array, path: slices.Concat(table, names), start: int(e.Raw.Offset), end: int(e.Raw.Offset + e.Raw.Length)}
			l.value = value + blanks(doc[value:])
			lines = append(lines, l)
		}
	}
	return lines, p.Error()
}

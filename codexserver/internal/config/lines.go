package config

import (
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// line is a header or a key with its value in a TOML document.
type line struct {
	header bool
	path   []string // of the header or of the key, from the top
	start  int
}

// linesOf parses a document.
func linesOf(doc []byte) ([]line, error) {
	var lines []line
	var table []string
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
			table = names
			lines = append(lines, line{header: true, path: names, start: end})
		case unstable.KeyValue:
			lines = append(lines, line{path: slices.Concat(table, names), start: int(e.Raw.Offset)})
		}
	}
	return lines, p.Error()
}

package config

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// layout has the positions of tables and keys in a TOML document.
type layout struct {
	doc      []byte
	sections []section // the first is what comes before any header
}

// section is a table header and what follows it.
type section struct {
	path    []string
	array   bool // the header was [[path]]
	header  int  // where the header's line ends; 0 in the first section
	entries []entry
}

// entry is a key and its value.
type entry struct {
	path       []string // from the top
	start, end int
	value      int   // where the value starts
	names      []int // where each part of the written key ends
	inline     bool  // the value is an inline table with these:
	entries    []entry
}

func parseLayout(doc []byte) (*layout, error) {
	l := &layout{doc: doc, sections: []section{{}}}
	var p unstable.Parser
	p.Reset(doc)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, ends := keyOf(e)
			l.sections = append(l.sections, section{path: path, array: e.Kind == unstable.ArrayTable, header: l.lineEnd(ends[len(ends)-1])})
		case unstable.KeyValue:
			s := &l.sections[len(l.sections)-1]
			s.entries = append(s.entries, l.entry(s.path, e))
		}
	}
	return l, p.Error()
}

func (l *layout) entry(table []string, n *unstable.Node) entry {
	names, ends := keyOf(n)
	e := entry{
		path:  slices.Concat(table, names),
		start: int(n.Raw.Offset),
		end:   int(n.Raw.Offset + n.Raw.Length),
		names: ends,
	}
	equals := ends[len(ends)-1] + bytes.IndexByte(l.doc[ends[len(ends)-1]:], '=')
	e.value = equals + 1 + blanks(l.doc[equals+1:])
	if value := n.Value(); value.Kind == unstable.InlineTable {
		e.inline = true
		for children := value.Children(); children.Next(); {
			if child := children.Node(); child.Kind == unstable.KeyValue {
				e.entries = append(e.entries, l.entry(e.path, child))
			}
		}
	}
	return e
}

// keyOf returns the parts of a key and where each of them ends.
func keyOf(n *unstable.Node) (names []string, ends []int) {
	for key := n.Key(); key.Next(); {
		part := key.Node()
		names = append(names, string(part.Data))
		ends = append(ends, int(part.Raw.Offset+part.Raw.Length))
	}
	return names, ends
}

// lineEnd returns the position after the next line break.
func (l *layout) lineEnd(at int) int {
	if i := bytes.IndexByte(l.doc[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(l.doc)
}

func blanks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t")) }

// find returns the entry at path and the innermost inline table that contains it. Either
// may be nil.
func (l *layout) find(path []string) (at, within *entry) {
	for i := range l.sections {
		if l.sections[i].array {
			continue
		}
		entries := l.sections[i].entries
		for {
			j := slices.IndexFunc(entries, func(e entry) bool { return begins(path, e.path) })
			if j < 0 {
				break
			}
			e := &entries[j]
			if len(e.path) == len(path) {
				return e, within
			}
			if !e.inline {
				break
			}
			within, entries = e, e.entries
		}
	}
	return nil, within
}

func begins(path, with []string) bool {
	return len(with) <= len(path) && slices.Equal(path[:len(with)], with)
}

// splice replaces the bytes from one place up to another.
func (l *layout) splice(from, to int, text string) []byte {
	return slices.Concat(l.doc[:from], []byte(text), l.doc[to:])
}

// set returns the document with value, in TOML, at path.
func (l *layout) set(path []string, value string) []byte {
	at, within := l.find(path)
	if at != nil {
		return l.splice(at.value, at.end, value)
	}
	if within != nil {
		return l.inside(within, quoteKeys(path[len(within.path):])+" = "+value)
	}
	table, key := path[:len(path)-1], quoteKey(path[len(path)-1])
	for _, s := range l.sections {
		if !s.array && slices.Equal(s.path, table) {
			end := s.header
			if n := len(s.entries); n > 0 {
				end = l.lineEnd(s.entries[n-1].end)
			}
			return l.line(end, key+" = "+value)
		}
	}
	// The table may have no header, but dotted keys. Add the key after them.
	for _, s := range slices.Backward(l.sections) {
		for _, e := range slices.Backward(s.entries) {
			if !s.array && len(e.path) > len(table) && begins(e.path, table) && len(table) > len(s.path) {
				prefix := l.doc[e.start:e.names[len(table)-len(s.path)-1]]
				return l.line(l.lineEnd(e.end), string(prefix)+"."+key+" = "+value)
			}
		}
	}
	newline := l.newline(len(l.doc))
	header := "[" + quoteKeys(table) + "]" + newline + key + " = " + value
	if len(l.doc) > 0 {
		header = newline + header
	}
	return l.line(len(l.doc), header)
}

// line inserts a line before the line at a position, or at the end.
func (l *layout) line(at int, text string) []byte {
	newline := l.newline(at)
	if at > 0 && l.doc[at-1] != '\n' {
		text = newline + text
	}
	return l.splice(at, at, text+newline)
}

// newline returns the line break of the line before at.
func (l *layout) newline(at int) string {
	if i := bytes.LastIndexByte(l.doc[:at], '\n'); i > 0 && l.doc[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// inside adds a key and its value to an inline table.
func (l *layout) inside(table *entry, text string) []byte {
	if n := len(table.entries); n > 0 {
		end := table.entries[n-1].end
		return l.splice(end, end, ", "+text)
	}
	return l.splice(table.value+1, table.value+1+blanks(l.doc[table.value+1:]), " "+text+" ")
}

// remove returns the document without the key at path and its value. A comment on their
// line stays.
func (l *layout) remove(path []string) []byte {
	at, within := l.find(path)
	switch {
	case at == nil:
		return l.doc
	case within != nil:
		return l.without(at)
	}
	begin, end := bytes.LastIndexByte(l.doc[:at.start], '\n')+1, l.lineEnd(at.end)
	rest := at.end + blanks(l.doc[at.end:end])
	if rest < end && l.doc[rest] == '#' {
		return l.splice(at.start, rest, "")
	}
	return l.splice(begin, end, "")
}

// without removes an entry and one comma from its inline table.
func (l *layout) without(e *entry) []byte {
	from, to := e.start, e.end
	if next := to + blanks(l.doc[to:]); l.doc[next] == ',' {
		to = next + 1 + blanks(l.doc[next+1:])
		return l.splice(from, to, "")
	}
	before := bytes.TrimRight(l.doc[:from], " \t\r\n")
	if before[len(before)-1] == ',' {
		from = len(before) - 1
	}
	return l.splice(from, to, "")
}

package elicit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
)

// A field is one member of an object, in the reference reader below.
type field struct {
	name  string
	value any // []field, []any, string, json.Number, bool, nil
}

// tree reads one JSON value with the older encoding/json, token by token, so
// that objects keep all their members.
func tree(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		fields := []field{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			value, err := tree(dec)
			if err != nil {
				return nil, err
			}
			fields = append(fields, field{name.(string), value})
		}
		_, err := dec.Token()
		return fields, err
	case json.Delim('['):
		items := []any{}
		for dec.More() {
			item, err := tree(dec)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := dec.Token()
		return items, err
	}
	return token, nil
}

// duplicates reports whether any object below v has two members of one name.
func duplicates(v any) bool {
	seen := make(map[string]bool)
	switch v := v.(type) {
	case []any:
		if slices.ContainsFunc(v, duplicates) {
			return true
		}
	case []field:
		for _, f := range v {
			if seen[f.name] || duplicates(f.value) {
				return true
			}
			seen[f.name] = true
		}
	}
	return false
}

// mayApprove is a second implementation of the decision table. It only finds whether an
// answer approves (rows 1 to 3, 10 and 11), and how.
func mayApprove(result []byte) (yes, forSession bool, err error) {
	if !utf8.Valid(result) {
		return false, false, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(result))
	dec.UseNumber()
	v, err := tree(dec)
	if err != nil {
		return false, false, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return false, false, errors.New("more than one value")
	}
	top, ok := v.([]field)
	if !ok || duplicates(v) {
		return false, false, nil
	}
	var words []string // every decision there is, canonical
	action, content := "", []field(nil)
	for _, f := range top {
		text, isText := f.value.(string)
		switch {
		case f.name == "action":
			if text != "accept" {
				return false, false, nil
			}
			action = text
		case f.name == "decision":
			if !isText || text != "approved" && text != "approved_for_session" {
				return false, false, nil
			}
			words = append(words, text)
		case f.name == "content":
			if f.value != nil {
				if content, ok = f.value.([]field); !ok {
					return false, false, nil
				}
			}
		case strings.EqualFold(f.name, "action"), strings.EqualFold(f.name, "decision"), strings.EqualFold(f.name, "content"):
			return false, false, nil
		}
	}
	if action == "" && len(words) == 0 {
		return false, false, nil
	}
	for _, f := range content {
		text, _ := f.value.(string)
		switch f.name {
		case "decision":
			switch strings.Trim(strings.ToLower(text), " \t\r\n") {
			case "approved", "accept", "allow", "yes", "approve":
				words = append(words, "approved")
			case "approved_for_session", "approved-for-session", "approvedforsession", "acceptforsession":
				words = append(words, "approved_for_session")
			default:
				return false, false, nil
			}
		case "approved", "approve", "confirm", "confirmed", "allow", "allowed":
			if f.value != true {
				return false, false, nil
			}
			words = append(words, "approved")
		default:
			for _, name := range []string{"action", "decision", "content"} {
				if f.name != name && strings.EqualFold(f.name, name) {
					return false, false, nil
				}
			}
		}
	}
	forSession = len(words) > 0
	for _, word := range words {
		forSession = forSession && word == "approved_for_session"
	}
	return true, forSession, nil
}

func FuzzRead(f *testing.F) {
	for _, tt := range answers {
		f.Add([]byte(tt.result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		out := (&elicit.Question{}).Read(result, nil)
		if !out.Decision.Valid() {
			t.Fatalf("%q: decision %q", result, out.Decision)
		}
		yes, forSession, err := mayApprove(result)
		switch {
		case out.Decision == approved && !yes, out.Decision == session && !(yes && forSession):
			t.Fatalf("%q: %s, but the table says approve %v, for the session %v (%v)", result, out.Decision, yes, forSession, err)
		case (out.ForModel() == "") != (out.Decision == approved || out.Decision == session):
			t.Fatalf("%q: %s, told the model %q", result, out.Decision, out.ForModel())
		case strings.ContainsAny(out.Detail, "\n\r\x1b") || !utf8.ValidString(out.Detail):
			t.Fatalf("%q: detail %q", result, out.Detail)
		}
		flat := (&elicit.Question{}).Read(result, &elicit.Options{NoLegacyFlat: true})
		if flat.Decision != out.Decision && flat.Decision != denied {
			t.Fatalf("%q: %s without flat answers, %s with them", result, flat.Decision, out.Decision)
		}
		if in := (&elicit.Question{}).ReadInputResponse(result, nil); in.Decision != flat.Decision {
			t.Fatalf("%q: %s in inputResponses, %s without flat answers", result, in.Decision, flat.Decision)
		}
	})
}

// The reference and the reader agree on the whole table, both ways.
func TestReferenceAgrees(t *testing.T) {
	for _, tt := range answers {
		yes, forSession, _ := mayApprove([]byte(tt.result))
		if tt.row == 13 || strings.Contains(tt.result, `"Approved":`) {
			continue // encoding/json and the reference are laxer there
		}
		if want := tt.decision == approved || tt.decision == session; yes != want || forSession != (tt.decision == session) {
			t.Errorf("row %d: %s: reference says %v, for the session %v; want %s", tt.row, tt.result, yes, forSession, tt.decision)
		}
	}
}

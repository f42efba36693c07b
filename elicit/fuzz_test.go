package elicit_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	jsonv2 "github.com/go-json-experiment/json"
)

// mayApprove is a second implementation of the decision table. It only finds whether an
// answer approves (rows 1 to 3, 10 and 11), and how.
func mayApprove(result []byte) (yes, forSession bool) {
	var top map[string]any
	if jsonv2.Unmarshal(result, &top) != nil { // nor with duplicates, at any depth
		return false, false
	}
	content, isObject := top["content"].(map[string]any)
	if top["content"] != nil && !isObject {
		return false, false
	}
	for _, object := range []map[string]any{top, content} {
		for name := range object {
			for _, known := range []string{"action", "decision", "content"} {
				if name != known && strings.EqualFold(name, known) {
					return false, false
				}
			}
		}
	}
	var words []string // every decision there is, canonical
	action, acts := top["action"]
	flat, decides := top["decision"]
	switch {
	case acts && action != "accept", !acts && !decides, decides && flat != "approved" && flat != "approved_for_session":
		return false, false
	case decides:
		words = append(words, flat.(string))
	}
	if decision, said := content["decision"]; said {
		text, _ := decision.(string)
		switch strings.Trim(strings.ToLower(text), " \t\r\n") {
		case "approved", "accept", "allow", "yes", "approve":
			words = append(words, "approved")
		case "approved_for_session", "approved-for-session", "approvedforsession", "acceptforsession":
			words = append(words, "approved_for_session")
		default:
			return false, false
		}
	}
	for _, name := range []string{"approved", "approve", "confirm", "confirmed", "allow", "allowed"} {
		if flag, said := content[name]; said && flag != true {
			return false, false
		} else if said {
			words = append(words, "approved")
		}
	}
	return true, len(words) > 0 && !slices.Contains(words, "approved")
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
		yes, forSession := mayApprove(result)
		switch {
		case out.Decision == approved && !yes, out.Decision == session && !(yes && forSession):
			t.Fatalf("%q: %s, but the table says approve %v, for the session %v", result, out.Decision, yes, forSession)
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
		yes, forSession := mayApprove([]byte(tt.result))
		if strings.Contains(tt.result, `"Approved":`) {
			continue // the reference is laxer there
		}
		if want := tt.decision == approved || tt.decision == session; yes != want || forSession != (tt.decision == session) {
			t.Errorf("row %d: %s: reference says %v, for the session %v; want %s", tt.row, tt.result, yes, forSession, tt.decision)
		}
	}
}

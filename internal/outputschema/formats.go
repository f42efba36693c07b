package outputschema

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// format is the keyword format. It is an assertion in draft 07, and only a note since.
// Formats that it does not know say nothing.
func (k *keywords) format() {
	name, ok := k.text("format")
	if !ok || k.draft == 2020 {
		return
	}
	valid, ok := k.formats[name]
	if !ok {
		valid = formatOf(name)
		k.formats[name] = valid
	}
	if valid == nil {
		return
	}
	k.rule(func(r *run, value any, _ tokens) *FaultError {
		text, ok := value.(string)
		if !ok {
			return nil
		}
		r.take(visitCost + visitCost*len(text))
		if !valid(text) {
			return fault("'%s' is not a valid %s", clip(text), name)
		}
		return nil
	})
}

const (
	days     = `(?:\d+Y(?:\d+M)?(?:\d+D)?|\d+M(?:\d+D)?|\d+D)`
	hours    = `T(?:\d+H(?:\d+M)?(?:\d+S)?|\d+M(?:\d+S)?|\d+S)`
	label    = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	hostname = label + `(?:\.` + label + `)*`
)

// formatOf returns the check of a format, nil for an unknown one.
func formatOf(name string) func(string) bool {
	switch name {
	case "date-time":
		return layout("2006-01-02T15:04:05Z07:00")
	case "date":
		return layout("2006-01-02")
	case "time":
		return layout("15:04:05Z07:00")
	case "duration":
		return matching(`P(?:\d+W|` + days + `(?:` + hours + `)?|` + hours + `)`)
	case "email":
		return matching(`[A-Za-z0-9!#$%&'*+/=?^_{|}~` + "`" + `-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_{|}~` + "`" + `-]+)*@` + hostname)
	case "hostname":
		return matching(hostname)
	case "uuid":
		return matching(`[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}`)
	case "ipv4":
		return func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a.Is4() }
	case "ipv6":
		return func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && a.Is6() && a.Zone() == ""
		}
	case "uri", "iri":
		return func(text string) bool { u, err := url.Parse(text); return err == nil && u.IsAbs() }
	case "uri-reference", "iri-reference":
		return func(text string) bool { _, err := url.Parse(text); return err == nil && !strings.Contains(text, `\`) }
	case "json-pointer":
		return func(text string) bool { return jsontext.Pointer(text).IsValid() }
	case "regex":
		return func(text string) bool { _, err := CompilePattern(text); return err == nil }
	}
	return nil
}

func layout(layout string) func(string) bool {
	return func(text string) bool {
		_, err := time.Parse(layout, strings.ToUpper(text))
		return err == nil && strings.Index(text, ":") == strings.Index(layout, ":") // Parse takes hours of one digit
	}
}

func matching(pattern string) func(string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString
}

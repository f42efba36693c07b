package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// A claim is the text of a stranger until it equals a subject of the configuration, and a subject may be
// copied from what a stranger chose. So of the template's folder only the last name is a subject, as it
// is, and its characters are such that no file system takes two of them for one, apart from their case.

// claimFolder are the names that a claim may give to a folder.
var claimFolder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._@+-]{0,126}[a-zA-Z0-9_@+-])?$`)
})

// checkTemplate fails unless the template is an absolute folder, with the claim as the name below it.
func (o *OAuth) checkTemplate() error {
	if o.Folder == "" {
		return nil
	}
	above, ok := o.above()
	if !ok || strings.ContainsAny(above, "{}") || !filepath.IsAbs(above) || filepath.Clean(above) != above || filepath.Dir(above) == above {
		return fmt.Errorf("http.oauth.folder: want an absolute path whose last name alone is the claim, such as /srv/code/{%s}", o.claim())
	}
	return nil
}

// above returns the part of the template that is the same for all users.
func (o *OAuth) above() (string, bool) {
	return strings.CutSuffix(o.Folder, string(filepath.Separator)+"{"+o.claim()+"}")
}

// folderOf returns the folder of a user with a subject.
func (o *OAuth) folderOf(subject string) (string, error) {
	if !claimFolder().MatchString(subject) {
		return "", fmt.Errorf("the claim %s is %.200q, which http.oauth.folder makes no folder of: want at most 128 letters, digits, ., _, @, + and -, with a letter or digit first and no . last; or set folders", o.claim(), subject)
	}
	above, _ := o.above()
	folder := filepath.Join(above, subject)
	if filepath.Dir(folder) != above { // does not happen
		return "", errors.New("it does not lie in " + above)
	}
	return folder, nil
}

// giveFolders gives each user without folders the one of http.oauth.folder. Names are sorted.
func (t *httpTable) giveFolders(names []string) error {
	if t.OAuth.Folder == "" {
		return nil
	}
	given := map[string]string{} // the subject of a folder, without its case
	for _, name := range names {
		p := t.Principals[name]
		if p.Folders != nil {
			continue
		}
		subject := p.subject(name)
		folder, err := t.OAuth.folderOf(subject)
		if other, taken := given[strings.ToLower(folder)]; err == nil && taken {
			err = fmt.Errorf("the claim %s is %q, and that of another user is %q: http.oauth.folder would make one folder of both where case does not count; set folders", t.OAuth.claim(), subject, other)
		}
		if err != nil {
			return fmt.Errorf("http.principals.%s.subject: %w", name, err)
		}
		given[strings.ToLower(folder)] = subject
		p.Folders = []string{folder}
		t.Principals[name] = p
	}
	return nil
}

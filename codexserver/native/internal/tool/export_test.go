package tool

// FetchNote is fetchNote.
const FetchNote = fetchNote

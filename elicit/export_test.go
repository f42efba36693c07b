package elicit

// QuoteCommand lets the tests of quoting reach it without the rest of a message.
var QuoteCommand = quoteCommand

# Makes lines of text into string literals of C.
s/["\\?]/\\&/g
s/.*/"&\\n"/

-- What the interpreter interprets: recursion, tables, strings and sorting.
local function queens(n, row, columns, left, right)
  if row == n then return 1 end
  local found = 0
  for column = 0, n - 1 do
    if not columns[column] and not left[row + column] and not right[row - column] then
      columns[column], left[row + column], right[row - column] = true, true, true
      found = found + queens(n, row + 1, columns, left, right)
      columns[column], left[row + column], right[row - column] = nil, nil, nil
    end
  end
  return found
end

local function words(count)
  local counts, state = {}, 1
  for _ = 1, count do
    state = (state * 16807) % 2147483647
    local word = string.format("w%d", state % 97)
    counts[word] = (counts[word] or 0) + #word
  end
  local names = {}
  for word in pairs(counts) do names[#names + 1] = word end
  table.sort(names)
  return #table.concat(names, ",")
end

for round = 1, size do
  print(round, queens(7, 0, {}, {}, {}), words(2000))
end

package stentor.lab;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;

/** Points of interest as a server reads them: rows of the SQLite file that the factor store names, made from the seed. */
final class StoredPoints {
    private final PreparedStatement rows;

    StoredPoints(Map<String, String> factors, long seed) throws SQLException {
        Connection connection = Rows.open(factors.get("store"));
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("DELETE FROM points");
            PreparedStatement point = Rows.inserting(connection);
            long number = 0;
            for (String[] fields : Reference.points(factors, seed)) {
                Rows.put(point, number++, fields);
            }
            statement.executeUpdate("UPDATE sync SET pages = 0, complete = 1");
        }
        connection.commit();
        connection.setAutoCommit(true);
        rows = connection.prepareStatement("SELECT " + String.join(", ", Content.FIELDS)
            + " FROM points WHERE number >= ? ORDER BY number LIMIT ?");
    }

    /** Answers Point COUNT SEED, or Point COUNT SEED FROM. */
    synchronized Content answer(Content request) {
        String[] wish = request.payload.split(" ");
        Content content = Content.of("points");
        try {
            rows.setLong(1, wish.length > 3 ? Long.parseLong(wish[3]) : 0);
            rows.setLong(2, Long.parseLong(wish[1]));
            try (ResultSet found = rows.executeQuery()) {
                while (found.next()) {
                    String[] point = new String[Content.FIELDS.length];
                    for (int at = 0; at < point.length; at++) {
                        point[at] = found.getString(at + 1);
                    }
                    content.points.add(point);
                }
            }
        } catch (SQLException error) {
            throw new IllegalStateException(error);
        }
        return content;
    }
}
